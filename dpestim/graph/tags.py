"""What scikit-learn reads of estimators of a graph: a part of the nodes is a part of rows and of columns."""


class TagsOfGraphs:
    """Mixin, which stands left of an estimator that takes the adjacency matrix of a graph, dense or sparse."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # (columns are nodes, as rows are: no table)
        tags.input_tags.pairwise = tags.input_tags.sparse = True
        return tags

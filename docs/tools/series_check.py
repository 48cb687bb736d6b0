"""No two series of a picture look alike: what the site's pictures are checked for while they are drawn."""

from matplotlib.colors import to_hex


def alike(figure):
    """Return pairs of labels in one plot of a figure whose series share colour and marker.

    Dashes and transparency do not count: they are lost in print and in small pictures.
    """
    found = []
    for ax in figure.axes:
        seen = {}
        for handle, label in zip(*ax.get_legend_handles_labels()):
            first = seen.setdefault(look(handle), label)
            if first != label:
                found.append((first, label))
    return found


def look(handle):
    """Return (colour, marker) of what a legend shows: a line, points, bars, or a band."""
    if isinstance(handle, tuple):  # of error bars and bars the first part is the series
        handle = handle[0] if handle[0] is not None else handle[-1][0]
    if hasattr(handle, "get_marker"):
        marker = handle.get_marker()
        marked = marker not in ("None", "", " ", None)
        only_points = marked and handle.get_linestyle() == "None"
        return to_hex(handle.get_markerfacecolor() if only_points else handle.get_color()), marker if marked else None
    empty = not getattr(handle, "get_fill", lambda: True)()
    for name in ("get_edgecolor",) if empty else ("get_facecolor", "get_edgecolor", "get_color"):
        colour = getattr(handle, name, lambda: [])()
        if len(colour):
            first = colour[0] if not isinstance(colour, (str, tuple)) else colour
            return to_hex(first), type(handle).__name__
    raise TypeError(f"cannot tell the colour of {handle}")


def refuse_alike(figure, where):
    """Raise ValueError where two series of a figure look alike."""
    pairs = alike(figure)
    if pairs:
        raise ValueError(f"{where}: {' and '.join(map(repr, pairs[0]))} share colour and marker: change one")


def _get_sg_image_scraper():
    """Return what sphinx-gallery calls for the figures of each part of an example (it looks for this name)."""
    import matplotlib.pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    def scraper(block, block_vars, gallery_conf):
        for number in plt.get_fignums():
            refuse_alike(plt.figure(number), block_vars["src_file"])
        return matplotlib_scraper(block, block_vars, gallery_conf)

    return scraper

"""Domains with an order, and domains too large to be listed, from reports of views: each user reports one, drawn first.

    codes       values of huge domains as codes of up to 64 bits, and back
    prefixes    views of a code: its first bits; some bits beside a hash of all
    depths      which of these views users draw, from public numbers
    growing     candidates for frequent values, from estimates of prefixes or of fragments
    hitters     `HeavyHitterEstimator`: frequent values of domains that nobody can list
    baskets     baskets as sets of numbers of items
    padding     laws of sets: padding and sampling, and what is reported of the value that is drawn
    questions   what groups of users are asked about their baskets, and what their reports tell
    asking      rounds of these questions: verbs of both sides, groups of users, rows in parts
    itemsets    `ItemsetEstimator`: frequent items and sets of items of baskets
    signs       a law of the signs of Haar coefficients
    levels      which tree stands over the values of a column, and which law each of its levels has
    waves       ranges from reports of the square wave
    places      where ranges lie among the values of a feature
    ranges      `RangeEstimator`: shares of ranges, cumulative shares and quantiles from trees
    grids       grids over two columns, and how fine they are
    rectangles  `RectangleEstimator`: shares of rectangles of two columns
"""

#: What its estimators are for, in the tables of the documentation.
TASK = "Ranges and large domains, local model"
#: Which one to take, (if, name, because), in the order in which to ask.
GUIDE = (
    ("the most frequent words, addresses or identifiers are wanted, and nobody can list them", "HeavyHitterEstimator",
     "values are found by parts, and other users tell their frequencies, with an interval for each"),
    ("each user holds a basket of listed items, and the most frequent items or sets of items are wanted",
     "ItemsetEstimator", "a user reports one item of the basket, of as many slots as most baskets need"),
    ("the share of users between any two values is wanted", "RangeEstimator",
     "one report answers all ranges and quantiles, each with an interval"),
    ("the share of users in any rectangle of two ordered columns is wanted, such as of a map", "RectangleEstimator",
     "one report answers all rectangles, and ranges of each column"),
)

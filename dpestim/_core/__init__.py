"""Numbers and bits: the typed kernels, one file per idea.

A kernel is a pure function of (records, words, thresholds). It knows no epsilon and no scikit-learn, and it has no
randomness of its own: the 64-bit words it consumes are an argument, so that it can be tested word by word. The caller
allocates what it writes; lengths are all it checks. ``# IN`` and ``# OUT`` say which argument is which.

    encode   codes of a column of categories            (integers by range check, strings by hash look-up)
    groups   rows in the order of their groups, in one pass
    grr      randomised response over d values          (one or two words a record)
    binary   one bit against the threshold of its value
    noise    attempts at exact noise: discrete Laplace, discrete and rounded Gaussian, staircase
    table    any law of numbers: a search in a row of integer weights
    hadamard Hadamard response, and the fast Walsh-Hadamard transform
    histogram  codes of clipped noise, a word a cell
    pgr      points of projective spaces, and sums over all hyperplanes
    subset   k distinct values by multiply-shift draws
    unary    packed bits, eight by a table of 16 bits   (ties are settled exactly by rare words); column sums
    pm       the piecewise mechanisms: floats to fixed point, fixed point to codes
    em       iterations of expectation maximisation on a piecewise-constant channel, by prefix sums
    olh      multiply-shift hashes and their supports
    logistic loss, gradient and Hessian of clipped rows (floats, in one order of operations for every width of vectors)
    softmax  margins of several classes to probabilities, less the class that was seen
    kmeans   the nearest of some centers, and integer sums of steps from it
    build    what this build is

(``_cyutility`` is what Cython adds for all of them.)

Loops that need wide vectors stand in ``src/*.h``, compiled for several vector widths and chosen when the library is
loaded (``src/wide.h``). They are integer-only, or (logistic) floats in a fixed order of operations without fused ones,
so every width gives the same result.
"""

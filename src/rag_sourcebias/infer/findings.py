"""What inference says: methods of intervals, what they assume, what to know of them, refusals."""

from rag_sourcebias.core.finding import Code


class InferCode(Code, home="infer"):
    """Wordings of everything that is inferred from values."""

    # Methods of intervals.
    WEIGHTED_QUERIES = "weighted queries"
    WEIGHTED_CLUSTERS = "weighted clusters"
    CLUSTER_FLIPS = "sign flips of clusters"
    CLUSTERED_MEAN = "cluster-robust mean"
    CLUSTERED_DIFFERENCE = "cluster-robust difference of means"
    STANDARDISED_MEAN = "cluster-robust standardised mean"
    PAIRED_T = "paired t"
    T = "t"
    DELTA = "delta"
    FIELLER = "fieller"
    EXACT = "exact"
    BOOTSTRAP = "bootstrap"
    PAIRED_BOOTSTRAP = "paired bootstrap"
    SPREAD = "inverted paired bootstrap"
    GAFFKE = "Gaffke"
    INVERTED_TEST = "inverted test"
    LOGISTIC = "logistic regression, cluster-robust"
    LINEAR = "regression, cluster-robust"
    RANDOM_EFFECTS = "random effects"
    VERIFIED_TAGS = "verified tags, {units}"
    UNCHANGED = "no query changed"
    UNCHANGEABLE = "unchanged by construction"
    ALIKE = "all alike"
    WITH_SEEDS = "{method}, queries × seeds"
    CROSSING = "inverted interpolated intervals"
    DELONG = "DeLong by question, logit"
    DELONG_CHANGE = "DeLong by question, paired"
    SEPARATED = "exact, perfect separation"
    LABELS_T = "labels alone (t)"
    LABELS_WILSON = "labels alone (Wilson)"
    LABELS_BOOTSTRAP = "labels alone (empirical bootstrap)"
    LABELS = "labels alone"
    LABELS_SCORE = "labels alone, score form"
    REGRESSION = "regression on the judge"
    REGRESSION_SCORE = "regression on the judge, score form"
    PPI = "PPI (λ = {power:g})"
    PPI_TUNED = "PPI++ (tuned λ = {power:g})"
    PPI_CROSSFIT = "PPI (cross-fitted λ = {power:g})"
    PPI_PAPER = "PPI (paper)"
    CRC = "crc (paper)"
    DOCUMENTS = "documents sampled, regression on the judge"
    DIFFERENCE = "difference, {method}"
    DIFFERENCES = "simultaneous differences, regression on the judge"
    UNPAIRED = "unpaired difference, {method}"
    JUDGED_DELTA = "Relative Δ (Fieller), regression on the judge"
    FISHER = "{statistic}, jackknife over clusters on Fisher's scale"
    SLOPE = "slope at equal human value, jackknife over clusters"

    # What must hold for the stated confidence.
    QUERIES_SAMPLED = "queries are a random sample of the queries of interest"
    CLUSTERS_SAMPLED = (
        "clusters (queries) are a random sample; observations within one may depend on each other"
    )
    DOCUMENTS_SAMPLED = "{units} and documents are random samples"
    UNITS_SAMPLED = "{units} are a random sample"
    REWRITERS_SAMPLED = "the {n} rewriters are a random sample of rewriters"
    REWRITERS_FIXED = "the {n} rewriters are the only ones meant"
    SEEDS_SAMPLED = "seeds are a random sample of the seeds that could have been used"
    PAIRS_SAMPLED = "pairs are a random sample of documents"
    TEXTS_SAMPLED = "the texts of a group are a random sample"
    ITEMS_SAMPLED = "labelled items (clusters) are a random sample"
    LABELS_SAMPLED = "the labelled items were drawn at random from the judged pool"
    LABELS_APART = "the unlabelled items are other items from the same distribution"
    ITEMS_INDEPENDENT = "items are independent"
    CLUSTERS_INDEPENDENT = "clusters are independent"
    SETS_INDEPENDENT = "the two sets of items are independent"
    SAME_ITEMS = "the same items for every system"
    JUDGE_CONSISTENT = "the judge treats labelled and unlabelled items alike"
    SAME_POPULATION = "labelled and unlabelled queries are drawn from the same population"
    EXCHANGEABLE = "labelled and target queries are exchangeable"
    IN_REACH = "human values lie between all documents at the lowest and all at the highest grade"
    FIT_COSTS_ONE = "the fit to the labelled queries costs no more than one of them"
    ONE_CORRECTION = (
        "the rule of the paper spends one n + 1 correction on two sides: it under-covers, by up to "
        "1/(n + 1)"
    )
    MEAN_NORMAL = "their mean is close to normal"
    MEANS_NORMAL = "the mean scores are nearly normal (Fieller's set)"
    RATIO_NORMAL = "enough queries that ln of the ratio of means is nearly normal"
    SPECTRUM_NORMAL = (
        "log ratios of singular values are nearly normal; compared at this number of documents, as "
        "singular values depend on it"
    )
    MEANS_KNOWN = "both means of all scores are known well"
    RESAMPLING = "resampling them imitates sampling the population"
    TRIALS = "independent trials with one probability"
    ODDS_LINEAR = "log odds of winning are linear in the covariates"
    EXTRAPOLATED = (
        "they are linear beyond the covariate values seen too, where the win rate is extrapolated"
    )
    GAP_LINEAR = "the score gap is linear in the factors"
    WEIGHTS_LINEAR = "Relative Δ is linear between neighbouring weights"
    POWER_FIXED = "λ was fixed in advance"
    POWER_AS_FIXED = "λ is as good as fixed"
    OVERLAP_IGNORED = "normal quantiles; the overlap of the two samples is ignored"
    DOCUMENTS_VERIFIED = "{n} documents were drawn by chance and verified without error"
    DOCUMENTS_DRAWN = (
        "the documents were drawn by the stored design and every one of them was labelled"
    )
    LABELS_EXACT = "labels are human gains without error"
    CRC_BOOTSTRAP = (
        "the mean of the unlabelled queries is distributed like a bootstrap mean of the labelled "
        "ones around the judge's value (Eq. 27); it is not"
    )

    # What to know before quoting an interval.
    JUDGE_FEW = "fewer than 10 labels: the judge was not used"
    JUDGE_CONSTANT = "the judge is constant on the labelled items and was not used"
    JUDGE_WEAK = "this judge is no better than none: labels alone are as good"
    JUDGE_BLIND = "the judge does not tell these documents apart: the labels alone carry this"
    JUDGE_NO_HELP = "no sign that the judge helps: the labels alone carry this"
    LONG_TAIL = (
        "a few labels lie far from the rest, and others may lie further: without bounds such "
        "intervals may hold the true mean less often than they say; give bounds if you know them, "
        "or label more"
    )
    POWER_FEW = "tuned λ: too short with few labels"
    CRC_SHORT = (
        "leaves out the sampling error of what is unlabelled: under-covers its mean, and far more "
        "the population mean"
    )
    ALL_ALIKE = "all {n:pair has|pairs have} the same ratio: nothing is known of others"
    CLUSTERED = (
        "Queries come in {n:cluster|clusters}, which weigh as many as {effective} equal ones; "
        "the interval and the test go by whole clusters."
    )
    ZERO_POSSIBLE = "weight 0 is not excluded"
    BEYOND_POSSIBLE = "may lie beyond the largest weight tried"
    CROSSES_AGAIN = "the curve meets the target {n:time|times}; the first is given"
    FEW_CHANGED = "only {changed} of {n:query|queries} changed"
    FEW_DIFFER = "only {changed} of {n:query|queries} differ"
    TEXTS_MISSING = "{n} of {of:text is|texts are} missing"
    NO_REFERENCE = "{n} of {of:text has|texts have} no reference"
    TEXTS_DRAWN = "a random sample of {n} of {of:text|texts}"
    METEOR_SYNONYMS = "METEOR matches equal words, equal stems and WordNet's synonyms"
    METEOR_STEMS = (
        "METEOR matches equal words and equal stems (WordNet's synonyms are not installed)"
    )

    # Refusals.
    FEW_QUERIES = "an interval needs at least {n_needed} queries, not {n}"
    FEW_FOR_TEST = "a test needs at least {n_needed} queries, not {n}"
    FEW_FLIPS = "an interval of clusters at this level needs at least {n_needed} resamples, not {n}"
    FEW_CLUSTERS = "an interval needs at least {n_needed} clusters, or queries, not {n}: add data"
    UNEVEN = (
        "{n:cluster|clusters} of queries weigh as many as {effective} equal ones, which are too "
        "few to tell how much they vary; at least {least} are needed, about {n_needed} clusters "
        "like these: ask and judge queries of other clusters"
    )
    CLUSTERS_AGREE = (
        "all {n} clusters (queries) agree exactly, so nothing is known about how much they vary; "
        "an interval needs clusters that differ"
    )
    NO_SPREAD = (
        "{n:observation|observations} without spread cannot be standardised; at least 2 different "
        "values are needed"
    )
    NEITHER_SCORES = "neither source scores on any of {n:query|queries}, so Relative Δ is undefined"
    ONE_NEVER_SCORES = (
        "one source scores on none of {n:query|queries}; method '{method}' needs scores of both; "
        "method 'auto' gives an interval that needs no approximation"
    )
    SCORES_RARE = (
        "the mean score of one source is {z} standard errors from 0 over {n:query|queries}; method "
        "'{method}' needs at least {least:whole}, about {n_needed:query|queries}; method 'auto' "
        "gives an interval that needs no approximation"
    )
    ONE_RATIO = (
        "all {n:query gives|queries give} the two sources scores in one ratio; method '{method}' "
        "needs at least {least} that differ; method 'auto' gives an interval that needs no "
        "approximation"
    )
    RATIOS_RARE = (
        "all but {differing} of {n:query|queries} give the two sources scores in one ratio; method "
        "'{method}' needs at least {least} that differ, about {n_needed:query|queries}; method "
        "'auto' gives an interval that needs no approximation"
    )
    UNBOUNDED = (
        "the sources score so rarely over {n:query|queries} that Fieller's set is unbounded at "
        "confidence level {level:level}; about {n_needed:query is|queries are} needed"
    )
    FEW_COMMON = (
        "{n} {units} with relevant documents of both sources are too few to tell how much they "
        "vary; at least {n_needed} are needed: judge documents of both sources for more of them"
    )
    FEW_REWRITERS = (
        "{n:rewriter is|rewriters are} too few to tell how much they vary; at least {n_needed} are "
        "needed: until then the figures hold for these rewriters only"
    )
    FEW_WITH_PAIRS = (
        "{n:query|queries} with pairs are too few to tell how much they vary; at least {n_needed} "
        "are needed: judge more queries"
    )
    FEW_OWN_PAIRS = (
        "{n:query|queries} with independent pairs are too few to tell how much they vary; at least "
        "{n_needed} are needed: the others share theirs; judge more documents"
    )
    FEW_HITS = (
        "{n} {units} with hits are too few to tell how much they vary; at least {n_needed} are "
        "needed: judge more of them"
    )
    NEITHER_SCORES_THEN = (
        "{side}: neither source scores on any of {n:query|queries}, so Relative Δ is undefined"
    )
    REFERENCE_NEVER_SCORES = (
        "the reference scores on none of {n:query|queries}, so a relative loss is undefined"
    )
    NOTHING_RELEVANT = "no relevant document was retrieved within the cutoff"
    FEW_VERIFIED = (
        "{n} of {drawn:document is|documents are} verified; at least {n_needed} are needed: fill "
        "in more of the sheet, or draw a larger one"
    )
    FEW_OF_KIND = (
        "of {n} verified documents {people} are by people and {models} by a model; at least "
        "{least} of either are needed to know how the detector errs: verify more, or leave the "
        "detector out where one kind is this rare"
    )
    TAGS_TELL_NOTHING = (
        "on {n} verified documents the tags tell nothing: sensitivity + specificity − 1 is "
        "{youden:2} ± {reach:2}, and 0 is a coin; fit the detector on documents of your own, or "
        "tag by rules and provenance"
    )

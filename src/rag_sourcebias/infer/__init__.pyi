from .judged import ppi_interval as ppi_interval
from .means import difference_test as difference_test
from .means import queries_for_verdict as queries_for_verdict

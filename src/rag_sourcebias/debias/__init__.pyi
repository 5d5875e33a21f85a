from .fit import fit_parity_calibration as fit_parity_calibration
from .fit import fit_source_projection as fit_source_projection
from .parity import ParityCalibration as ParityCalibration
from .search import debias_curve as debias_curve
from .twins import TwinRescorer as TwinRescorer

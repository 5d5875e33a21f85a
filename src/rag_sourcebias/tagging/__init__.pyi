from .detector.fit import DetectorTagger as DetectorTagger
from .detector.fit import fit_detector as fit_detector
from .detector.fit import load_detector as load_detector
from .documents import Tagger as Tagger
from .rules import IdTagger as IdTagger
from .rules import ProvenanceTagger as ProvenanceTagger
from .rules import RuleTagger as RuleTagger
from .rules import read_rules as read_rules

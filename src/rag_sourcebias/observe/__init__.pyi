from .events import RetrievalEvent as RetrievalEvent
from .events import TagLookup as TagLookup
from .events import guarded as guarded
from .events import read_key as read_key
from .observers import ObserverGroup as ObserverGroup
from .recorder import Attachment as Attachment
from .recorder import Recorder as Recorder
from .unobserved import suppress as suppress

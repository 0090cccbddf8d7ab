"""What a text speaks of, and how: the aspects that its headings name, and the context of its findings."""

from capr.annotate.aspects import Aspect, aspect_of
from capr.annotate.context import Cue, context

__all__ = ["Aspect", "Cue", "aspect_of", "context"]

"""What a text speaks of: so far the aspects, which its headings name."""

from capr.annotate.aspects import Aspect, aspect_of

__all__ = ["Aspect", "aspect_of"]

"""A short real training run through the user's own launcher, watched from outside.

Calling this package calls `dsdoctor.smoke`, a function of the public API.
"""

from __future__ import annotations

from dsdoctor.callable_module import make_callable

make_callable(__name__, "dsdoctor.calls.smoke")

"""Before anything is imported: compiled kernels are cached by the content of all sources.

Numba's own cache looks at the time stamp of a kernel's own file, so that it would run old versions of kernels called from others.
Where a submission is checked (CI is set), property tests draw the same examples every time; elsewhere they look for new ones.
"""

import hashlib
import os
import tempfile
from pathlib import Path

from hypothesis import settings

_SOURCES = Path(__file__).parents[1] / "src" / "ldfm"
_digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_SOURCES.rglob("*.py")))).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"ldfm-tests-{os.getuid()}-{_digest}"))

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

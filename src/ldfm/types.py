"""Names for the array types used throughout."""

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]
Codes = np.ndarray[Any, np.dtype[np.integer[Any]]]
Booleans = np.ndarray[Any, np.dtype[np.bool_]]
Rows = np.ndarray[Any, Any]  # Codes of a discrete model, or Floats, the cells of a mixed one

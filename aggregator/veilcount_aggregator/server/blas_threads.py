"""Linear algebra on one thread: imported before numpy, whose library reads this as it loads.

Our matrices are small. On a busy machine the library's threads wait for one another: on two of them
the eigenvectors of one histogram took 1.5 s, on one .04 s. Whoever has set a number keeps it.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

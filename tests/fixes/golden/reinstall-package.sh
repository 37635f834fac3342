# reinstall-package: install accelerate==1.15.0 and tokenizers==0.23.3 again
# because accelerate 1.15.0 is installed, but `accelerate/a.py` is empty
# because tokenizers 0.23.3 is installed, but `tokenizers/t.so` is cut off or overwritten
(set -e
# the same releases, with the files that pip recorded
/e/bin/python -m pip install --no-input --force-reinstall --no-deps accelerate==1.15.0 tokenizers==0.23.3
)

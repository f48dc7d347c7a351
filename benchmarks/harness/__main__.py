import sys

from harness.cli import main
from harness.entry import begin

begin()
sys.exit(main(sys.argv[1:]))

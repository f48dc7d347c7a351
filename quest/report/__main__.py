import sys

from quest.ground.entry import begin
from quest.report.cli import main

begin()
sys.exit(main(sys.argv[1:]))

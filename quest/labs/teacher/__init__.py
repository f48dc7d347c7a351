"""What a teacher needs beside `make grade`: bundles, a class's tables, who copied, its data."""

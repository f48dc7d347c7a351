footer="run of 2026-11-21, AMD EPYC, 2 cores, Linux 6.18, quick"
source="here"

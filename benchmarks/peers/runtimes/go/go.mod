module runtimes

go 1.23

module runtimes

go 1.21

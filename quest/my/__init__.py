"""`make my`: one server that grows through the book, in 29 stages (labs/README.md)."""

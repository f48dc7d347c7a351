"""What each stage asks of a server, by real connections; a module for each part of the path.

A check is a function that takes a Bench. It returns if the server does what the stage asks, and raises Failed with one
sentence, that has the measured thing in it, if it does not.
"""

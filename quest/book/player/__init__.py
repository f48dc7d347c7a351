"""The player: a recording of a real server, one call at a time, as a picture that can be stepped through.

recording reads one; excerpts has its source lines; moments names what matters; scale gives room to each
event; lanes draws who works and who waits; page puts them together; front draws six servers beside
one another, and picture makes them README's. What moves in the browser is chapters/pandoc/player.js.
"""

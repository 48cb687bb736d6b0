"""Statistics as functions: summarise, release, charge once; the classes do the work.

A module for each module of classes, so that who asks for one function loads no other statistic; `making` makes them.
"""

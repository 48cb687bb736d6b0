"""What messages between parties may have at most: one table for all protocols. Who sends more has a `PartiesError`."""

#: Parties of a protocol, entries of a vector in a sum, and users of an owner in an intersection.
MOST_PARTIES, MOST_ENTRIES, MOST_USERS = 1 << 16, 1 << 28, 1 << 22
#: Bytes of the header of a message, and of its arrays where the terms of a protocol say nothing.
MOST_HEADER, MOST_BODY = 1 << 22, 1 << 30
#: Bytes of the header of the first message of a connection, which has no arrays: anybody could send it.
MOST_FIRST = 1 << 16
#: Messages that wait for a server; connections of whom no signed message has come; messages that a party is ahead.
MOST_WAITING, MOST_STRANGERS, MOST_AHEAD = 256, 256, 8
#: Messages of a party in one of several sums: each of six phases has one.
MOST_IN_A_ROUND = 16

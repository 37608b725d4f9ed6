"""`veilcount demo`: the whole way of a value on one machine, with a crowd whose truth is known.

A made-up hiking app asks a made-up crowd five questions over some months, told in half a minute.

| part         | what it does                                        | real, or made up     |
|--------------|-----------------------------------------------------|----------------------|
| `campaign`   | `collections.toml`, moved to begin four months ago  | as an app ships it   |
| `clock`      | one calendar for all; at the end it goes on         | the months: made up  |
| `population` | who they are, what they would say and when          | made up, from a seed |
| `devices`    | some hundred `veilcount_client.Client`s, over HTTP  | real                 |
| `crowd`      | everyone else: the same schedule, by the exact law  | simulated            |
| `stage`      | store, aggregator and server, gone again at the end | real                 |
| `story`      | one day after the other, then a curator's release   | real                 |
| `figures`    | truth beside local beside central                   | the truth: made up   |
| `summary`    | all that is told at the end, and `printed`          |                      |

Both kinds of devices pass through one intake, where nothing tells them apart. The truth stays in
this process: the aggregator never learns it, and nothing is written into a counter from behind.
"""

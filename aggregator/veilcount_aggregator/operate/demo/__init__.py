"""`veilcount demo`: a complete deployment on one machine, with a simulated population.

A fictional hiking app collects seven statistics over four months, replayed in half a minute.

| module              | what it holds                                         | real or simulated  |
|---------------------|-------------------------------------------------------|--------------------|
| `campaign`          | `collections.toml`, with dates that begin 4 months ago| as an app ships it |
| `population`        | the users, when they use the app, their true answers  | simulated, seeded  |
| `real_devices`      | some hundred `veilcount_client.Client`s, over HTTP    | real               |
| `simulated_devices` | all others: same schedule, messages drawn exactly     | simulated          |
| `relayed_question`  | one question over a relay, with tokens of an issuer   | real               |
| `shuffled_question` | one question by a shuffler; envelopes are handed over by a call | real     |
| `deployment`        | store, aggregator, server; one clock for all          | real               |
| `run`               | the replay day by day, then a central release         | real               |
| `summary`           | the truth with the reader's figures, and their tables | truth: simulated   |

Reports of both kinds of devices pass the same intake, which cannot tell them apart. The truth stays
in this process: the aggregator never receives it, and no counter is written directly.
"""

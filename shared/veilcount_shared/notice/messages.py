"""The sentences of receipt and notice, in English; the notice's by key, for translations.

Words in braces are filled in; a text may leave them out. `{periods:one day|# days}` chooses by
number. A text is plain, never HTML.
"""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    # -- why it is asked, and the possible answers
    "notice_title_question": "Why it is asked",
    "notice_purpose": "{purpose}",
    "notice_no_purpose": "The purpose is not stated.",
    "notice_answers_boolean": "Possible answers: yes or no.",
    "notice_answers_listed": "Possible answers: {labels}.",
    "notice_answers_many": "Possible answers: one of {size} values of a list that comes with the"
    " app.",
    "notice_answers_several": "Possible answers: any of {labels}, also none; a report is about one"
    " of them, drawn by chance.",
    "notice_answers_several_most": "Possible answers: up to {most} of {labels}, also none; of more"
    " than {most}, so many are drawn by chance.",
    "notice_answers_number": "Possible answers: a number from {low} to {high}; one beyond is taken"
    " for the nearer end.",
    "notice_answers_features": "Possible answers: a number for each of {features}; a report is"
    " about one or two of them, drawn by chance.",
    "notice_answers_questions": "Possible answers: one for each of {questions}; a report is about"
    " the answers to two of them, drawn by chance.",
    "notice_tables": "All reports together show how common answers are, and which go together.",
    "notice_answers_open": "Possible answers: any text of up to {length} characters. The server"
    " reads how common a text is only by naming it; one that few people have is not found.",
    "notice_answers_discover": "Possible answers: any text of up to {length} characters. The"
    " server finds what many people have, letter by letter; what few people have is not found.",
    "notice_cross": "The answer is sent together with {attributes}, as one.",
    "notice_measure_mean": "All reports together show the average.",
    "notice_measure_distribution": "All reports together show which numbers are how common.",
    "notice_measure_ranges": "All reports together show how common numbers between any two bounds"
    " are.",
    "notice_measure_moments": "All reports together show the averages, and how the numbers depend"
    " on each other.",
    "notice_measure_trend": "All reports together show in each period how common a yes is.",
    # -- what is sent
    "notice_title_sent": "What is sent",
    "notice_randomized": "Your answer is changed at random on your device before it is sent, so"
    " that no single report says for certain what you answered. The true answer stays on the"
    " device. Only over many people do the random changes average out.",
    "notice_randomized_by_app": "The app's own server sees your answer and changes it at random"
    " before it is sent to the statistics server, so that no single report says for certain what"
    " you answered. Only over many people do the random changes average out.",
    "notice_true_value": "Your true answer, to the operator of the statistics server, who is"
    " trusted with it. Noise is added there, before any result is shown.",
    # -- how often, and until when
    "notice_title_frequency": "How often, and until when",
    "notice_often_user": "Once.",
    "notice_often_event": "At most {times:once|# times} a day, on {periods:one day|each of #"
    " days}.",
    "notice_often_event_drawn": "At most {times:once|# times} a day, on {answering} of the"
    " {periods} days, drawn beforehand by chance.",
    "notice_often_day": "At most once a day, on {periods:one day|each of # days}.",
    "notice_often_day_drawn": "At most once a day, on {answering} of the {periods} days, drawn"
    " beforehand by chance.",
    "notice_often_week": "At most once a week, in {periods:one week|each of # weeks}.",
    "notice_often_week_drawn": "At most once a week, in {answering} of the {periods} weeks, drawn"
    " beforehand by chance.",
    "notice_often_month": "At most once a month, in {periods:one month|each of # months}.",
    "notice_often_month_drawn": "At most once a month, in {answering} of the {periods} months,"
    " drawn beforehand by chance.",
    "notice_takes_first": "What counts is the first value of that time.",
    "notice_takes_last": "What counts is the last value of that time.",
    "notice_takes_any": "What counts is whether it was ever so in that time.",
    "notice_takes_max": "What counts is the largest value of that time.",
    "notice_takes_sum": "What counts is the sum of the values of that time.",
    "notice_takes_returning": "What counts is whether you were there in the period before as well.",
    "notice_first_run": "Only the first run of the app in that time that records a value is"
    " counted.",
    "notice_changes": "Of the changes of your answer, at most {changes:one is|# are} counted.",
    "notice_dates": "Between {first} and {last} (UTC).",
    "notice_cap_collection": "The app keeps count and sends no more than that; the server refuses"
    " more.",
    "notice_cap_period": "The app keeps count and sends no more than that; the server refuses more"
    " within one period.",
    "notice_cap_none": "The app keeps count and sends no more than that; nobody else can check it.",
    "notice_cap_token": "The app keeps count and sends no more than that; for one account, the"
    " issuer of the tokens signs no more.",
    "notice_cohort": "Asked of about one person in {of}, drawn beforehand by chance.",
    "notice_group": "You are asked one of {of} questions, drawn beforehand by chance: {questions}."
    " The server sees which one you answer.",
    "notice_twin": "Whoever is asked this is not asked \u201c{twin}\u201d, and the reverse, drawn"
    " beforehand by chance.",
    "notice_replaces": "It continues the question \u201c{replaces}\u201d: what that revealed counts"
    " towards the limit of this one.",
    # -- what an answer gives away
    "notice_title_guess": "What an answer gives away",
    "notice_guess": "Somebody who wonders which of two answers you gave, and holds both equally"
    " likely, is right half of the time without any data.",
    "notice_guess_report": "With one report, at most {one} times in 20.",
    "notice_guess_reports": "With all {reports} reports, if your answer never changes, at most"
    " {all} times in 20.",
    "notice_guess_trend": "With all of your reports together, at most {one} times in 20.",
    "notice_guess_release": "With what is released of one answer, at most {one} times in 20.",
    "notice_guess_releases": "With all releases, if your answer never changes, at most {all} times"
    " in 20.",
    "notice_epsilon_substitute": "In the language of experts: epsilon {event} for one answer,"
    " {day} for one day and {user} for all of them, by substitution (one answer or another).",
    "notice_epsilon_add-remove": "In the language of experts: epsilon {event} for one answer,"
    " {day} for one day and {user} for all of them, by add-remove (with or without an answer;"
    " between two answers, {doubled} for all of them).",
    "notice_guess_together": "What follows holds even if shuffler and server work together.",
    "notice_epsilon_together": "In the language of experts, by substitution: shuffler and server"
    " together, epsilon {own} a report, {user} in {reports:one report|all # reports}.",
    "notice_epsilon_server": "The server alone, if the shuffler keeps its word: {epsilon} a report"
    " (delta {delta}).",
    "notice_epsilon_server_in_all": "The server alone, if the shuffler keeps its word: {epsilon} a"
    " report, {composed} in {reports:one report|all # reports} (delta {delta}).",
    "notice_two_adversaries": "These are two adversaries, whose figures are never added. That you"
    " take part is not hidden.",
    "notice_delta": "Each epsilon may fail to hold with probability delta, {delta}.",
    "notice_noise": "The noise on each count is Laplace noise of limited size.",
    "notice_doubt_most": "That is careful.",
    "notice_doubt_much": "That still leaves much doubt.",
    "notice_doubt_some": "Over the whole time that leaves some doubt, not much.",
    "notice_doubt_little": "Over the whole time that leaves little doubt to somebody who can join"
    " all of it.",
    "notice_habit": "Many answers about the same habit together tell more about the habit than one"
    " does.",
    "notice_common": "What is true of most people can be learned without you, and may be true of"
    " you.",
    # -- what is not hidden
    "notice_title_public": "What is not hidden",
    "notice_curator": "To the operator of the statistics server, your true answer. And:",
    "notice_presence_hidden": "That the app runs and takes part. Whether you used what is asked"
    " about is hidden: everybody sends the same number of reports.",
    "notice_presence_event": "That you answered, when, and how often.",
    "notice_presence_day": "On which days you answered.",
    "notice_presence_week": "In which weeks you answered.",
    "notice_presence_month": "In which months you answered.",
    "notice_presence_user": "Whether you answered.",
    "notice_segment": "Sent in clear: {segment} ({labels}).",
    "notice_linkage_collection": "Your reports to this question can be recognized as one"
    " person's, under a random name that is used for nothing else.",
    "notice_linkage_period": "Reports of one period can be recognized as one person's; those of"
    " different periods carry different random names.",
    "notice_linkage_none": "Each report carries a random name of its own.",
    "notice_linkage_batch": "A report carries no name at all.",
    "notice_linkage_token": "Each report carries a random name of its own, and a token that was"
    " signed for your account without being seen: nobody can tell from it whose report it is. The"
    " keys of the tokens are the same for everybody (list {tokens}). Their issuer learns that your"
    " account takes part and when it fetches tokens, and sees no report.",
    "notice_direct": "Whoever runs the network sees your address when a report is sent; the server"
    " does not write it down.",
    "notice_relay": "Reports are sent through a relay, whose operator sees your address and no"
    " report; the server sees reports and no address. Both together could join them.",
    "notice_relay_operator": "The relay is operated by {operator}.",
    "notice_shuffler_address": "Reports travel through a shuffler, whose operator sees your address"
    " and no report. The server sees no address. Both together could join address and report.",
    "notice_shuffler": "The shuffler holds the sealed reports of a period until {grace:one day|#"
    " days} after its end, and hands them over once, in random order; fewer than {least} are never"
    " handed over. The server sees no hour and no order.",
    "notice_shuffler_covers": "The shuffler adds {covers} random reports of its own, which hide"
    " yours.",
    "notice_shuffler_operator": "The shuffler is run by {operator}.",
    "notice_shuffler_presence_hidden": "How many take part is published exactly.",
    "notice_shuffler_presence_public": "The operator of the shuffler sees in which periods this"
    " device had an answer.",
    "notice_app_server": "Reports are sent by the app's own server: your address stays with it.",
    # -- what is kept, and how long
    "notice_title_kept": "What is kept, and how long",
    "notice_counted": "The server adds your report to counts and keeps the counts, without an end,"
    " not the report.",
    "notice_counted_true": "The server adds your answer to a count and keeps the count, without an"
    " end, not the answer.",
    "notice_row_campaign": "That a report of your random name has arrived is remembered, so that"
    " none counts twice, until {days} days after the last day.",
    "notice_row_period": "That a report of your random name has arrived is remembered, so that none"
    " counts twice, until {days} days after its period's end.",
    "notice_row_none": "No random name of yours is kept.",
    "notice_shuffler_keeps": "The shuffler erases a sealed report once it is handed over, and at"
    " the latest {days} days after its period's end.",
    "notice_issuer_record": "The issuer of the tokens keeps one record for your account and this"
    " question: of which periods tokens were signed. It is deleted with the question's last key.",
    "notice_waits_true": "Your true answer waits in the app until it is delivered.",
    "notice_waits_running": "What was recorded so far waits in the app until the report is made"
    " from it.",
    "notice_waits_returning": "When you were there last is kept in the app until the last day.",
    "notice_waits_trend": "The last answer is kept in the app until the last day.",
    "notice_held_process": "It is in the app's memory only, and lost if the app is killed.",
    "notice_held_device": "It is kept on the app's disk, readable by the app's user only; it is"
    " wiped then, and when you withdraw your consent or have it forgotten.",
    "notice_late": "A report that cannot be sent waits in the app until {late:one day|# days} after"
    " its period.",
    "notice_sending": "A report waits in the app until its period is over, and leaves at an instant"
    " drawn from the first third of the {grace} days after it. One that cannot be sent in these"
    " days is dropped.",
    # -- withdrawal
    "notice_title_withdrawal": "If you change your mind",
    "notice_withdrawal": "You can withdraw your consent at any time: what waits is deleted, and"
    " nothing more is sent.",
    "notice_stays_counted": "What was counted stays counted: nobody's part can be taken out of a"
    " count.",
    "notice_stays_held": "A report that the shuffler holds already is counted too.",
    "notice_issuer_erases": "The issuer's record of your account is erased by its operator on"
    " request.",
    # -- whom to ask
    "notice_title_owner": "Whom to ask",
    "notice_owner": "{owner}",
    "notice_no_owner": "The people who make {app}.",
    "notice_identity": "This question is \u201c{name}\u201d of {app}, with the fingerprint"
    " {fingerprint}.",
}


class Count(int):
    """A number that chooses between a singular and a plural: `{times:once|# times}`."""

    def __format__(self, forms: str) -> str:
        if "|" not in forms:
            return format(int(self), forms or ",")
        singular, _, plural = forms.partition("|")
        return singular if self == 1 else plural.replace("#", f"{int(self):,}")


class Texts:
    """The texts in use: an app's own where it has them, else the English ones."""

    def __init__(
        self, own: Mapping[str, object] | None = None, messages: Mapping[str, str] = MESSAGES
    ) -> None:
        """Take an app's own texts; a ValueError names a key that `messages` does not have."""
        unknown = sorted((own or {}).keys() - messages.keys())
        if unknown:
            raise ValueError(
                f"messages = {unknown[0]!r}: no text of this key, give keys of MESSAGES"
            )
        self._english = messages
        self._texts = {**messages, **(own or {})}

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its words filled in. An app's may be lazy: it is made a string now."""
        try:
            return str(self._texts[key]).format(**values)
        except (
            LookupError,
            ValueError,
            AttributeError,
            TypeError,
        ):  # other braces in a translation
            return self._english[key].format(**values)


RECEIPT: Mapping[str, str] = {
    "spent": "spent {spent} of {life}; {answers} answers given",
    "spent_by_forms": "spent {spent} of {life}; with earlier forms",
    "closed": "closed: no more reports are accepted",
    "report": "{status}: {when}, {description}",
    "total": "{model}, {adjacency}: epsilon {epsilon}",
    "limit": "limit on this device: {charged} of at most {ceiling}, the plain sum of the stated"
    " epsilons (a safety limit, no privacy figure)",
    "losses": "Not recorded, {reason}: {count}",
}

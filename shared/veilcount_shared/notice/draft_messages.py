"""What drafts for Art. 30 and Art. 35 GDPR say that the notice does not, in English.

What software cannot know is a blank: it names what is to be filled in, and by whom it is decided.
"""

from __future__ import annotations

from collections.abc import Mapping

DRAFTS: Mapping[str, str] = {
    "title_records": "Record of processing activities of {app} (Art. 30 GDPR): draft",
    "title_assessment": "Data protection impact assessment of {app} (Art. 35 GDPR): draft",
    "status": "A draft, written from the definitions file by software, and no legal advice. Whoever"
    " is responsible completes, checks and signs it. Bold brackets mark what a definitions file"
    " cannot say. Sentences to \u201cyou\u201d are those of the privacy notice, as people read"
    " them.",
    "blank": "**[to be completed: {what}]**",
    "identity": "{question} Definition {fingerprint}.",
    # -- who is responsible
    "controller": "Who is responsible",
    "blank_controller": "name and contact of the controller, of joint controllers and of a"
    " representative",
    "blank_officer": "name and contact of the data protection officer, or why there is none",
    # -- what is processed
    "purpose": "Purpose",
    "basis": "Legal basis",
    "consent": "The client records nothing before a person agrees, asks again when a question"
    " changes, and deletes what waits when the consent is withdrawn.",
    "blank_basis": "the legal basis, and how consent is obtained and can be shown",
    "persons": "Whose data",
    "blank_persons": "which people use {app}; whether children or other vulnerable people do",
    "data": "Which data",
    "blank_special": "whether an answer, or what follows from it, is of a special category"
    " (Art. 9) or about offences (Art. 10)",
    "public": "What is not hidden",
    "frequency": "How often, and until when",
    "recipients": "Who receives what",
    "blank_recipients": "names of whoever operates servers, with their contracts (Art. 28), and"
    " who reads the results",
    "transfers": "Transfers to third countries",
    "blank_transfers": "the countries of all recipients, and the safeguards of each transfer",
    "retention": "How long",
    "blank_retention": "when counts, results, backups and logs are erased",
    "safeguards": "Safeguards and their figures",
    "blank_safeguards": "organisational measures: access, training, incidents, audits",
    # -- the assessment
    "necessity": "Necessity and proportionality",
    "blank_necessity": "why the purpose needs this question, this many answers and this epsilon,"
    " and which weaker ones were tried: `veilcount plan` computes the error of each",
    "owner": "Whom to ask",
    "rights": "Rights of the people",
    "blank_rights": "who answers requests, and within which time",
    "risks": "Risks, and what remains",
    "risk_one": "**Somebody learns one answer from one report.**",
    "risk_all": "**Somebody joins all reports of a person.**",
    "risk_presence": "**Taking part shows something.** Not hidden:",
    "risk_link": "**Reports are recognized as one person's.**",
    "risk_address": "**A report is joined with a network address.**",
    "risk_segment": "**What is sent in clear points at a person.**",
    "risk_curator": "**True answers are read, stolen or used otherwise at the server.**",
    "risk_device": "**Somebody reads what waits on the device.**",
    "risk_group": "**What is learned of many is applied to one person.**",
    "blank_remains": "likelihood and severity for these people, and whether what remains is"
    " acceptable",
    "together": "All questions together",
    "together_sum": "Of one person all questions of this file together reveal at most epsilon"
    " {day} in a day, {month} in a calendar month and {life} for life: the plain sum, which a"
    " device that begins with this file enforces as a limit; no privacy figure where its parts have"
    " different adjacencies.",
    "blank_together": "other data that the same recipients have of the same people",
    "decision": "Consultation and decision",
    "blank_advice": "advice of the data protection officer (Art. 35(2))",
    "blank_views": "views of the people concerned or their representatives, or why they were not"
    " sought (Art. 35(9))",
    "blank_authority": "whether a high risk remains and the supervisory authority is consulted"
    " (Art. 36)",
    "blank_decision": "decision, name, date, and when it is reviewed: at each change of the"
    " definitions, `veilcount check --against` states what differs",
}

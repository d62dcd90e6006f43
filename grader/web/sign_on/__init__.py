"""Sign-on with others' accounts by OpenID Connect: who is asked, how, and what of their answers is believed.

Decides nothing about accounts of ours: that is `grader.store.people.identities`'.
"""

"""Words that announce a value, in English, German and French."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fencerow.demo.model import Word
from fencerow.demo.patterns import Kind


@dataclass(frozen=True, slots=True)
class Label:
    """`above` allows the value to stand under the label; not for words that head table columns."""

    name: str
    kind: Kind
    phrases: tuple[str, ...]
    above: bool = True


LABELS: Final = (
    Label(
        "invoice_number", "number",
        ("invoice no", "invoice number", "invoice #", "invoice id", "rechnungsnummer", "rechnung nr",
         "rechnungs nr", "rechnungs-nr", "numéro de facture", "facture n°", "facture nº"),
    ),
    Label(
        "order_number", "number",
        ("po number", "po no", "p.o. number", "purchase order no", "purchase order number", "order number",
         "your order", "your reference", "order no", "bestellnummer", "ihre bestellung", "bon de commande n°",
         "votre commande"),
    ),
    Label(
        "delivery_number", "number",
        ("delivery note no", "delivery note number", "delivery no", "lieferschein nr", "bon de livraison n°"),
    ),
    Label(
        "customer_number", "number",
        ("customer no", "customer number", "account number", "account no", "kundennummer", "kunden-nr",
         "n° client", "code client"),
    ),
    Label(
        "contract_number", "number",
        ("contract no", "contract number", "agreement no", "agreement number"),
    ),
    Label("receipt_number", "number", ("receipt no", "receipt number", "receipt", "ticket no")),
    Label(
        "invoice_date", "date",
        ("invoice date", "date of issue", "issued on", "rechnungsdatum", "date de facture",
         "date de facturation"),
    ),
    Label(
        "due_date", "date",
        ("due date", "payment due", "due by", "due on", "pay by", "fällig am", "zahlbar bis", "échéance",
         "date d'échéance", "date d’échéance"),
    ),
    Label("order_date", "date", ("order date", "date of order", "bestelldatum", "date de commande")),
    Label(
        "delivery_date", "date",
        ("delivery date", "deliver by", "date of delivery", "shipped on", "dispatched on", "lieferdatum",
         "leistungsdatum", "date de livraison"),
    ),
    Label("statement_date", "date", ("statement date", "kontoauszug vom")),
    Label("effective_date", "date", ("effective date", "commencement date", "in force from")),
    Label("end_date", "date", ("end date", "expiry date", "valid until", "gültig bis")),
    Label(
        "total_due", "price",
        ("total due", "amount due", "balance due", "amount payable", "total payable", "zahlbetrag",
         "rechnungsbetrag", "gesamtbetrag", "net à payer", "total ttc"),
    ),
    Label(
        "subtotal", "price",
        ("subtotal", "sub-total", "net total", "nettobetrag", "zwischensumme", "total ht"), False,
    ),
    Label("total", "price", ("grand total", "order total", "total", "gesamtsumme", "summe"), False),
    Label("opening_balance", "price", ("opening balance", "balance brought forward")),
    Label("closing_balance", "price", ("closing balance", "balance carried forward", "new balance")),
    Label("iban", "iban", ("iban",)),
    Label(
        "vat_id", "vat",
        ("vat id", "vat no", "vat number", "vat reg no", "ust-idnr", "ust-id", "n° tva",
         "tva intracommunautaire"),
    ),
    Label("email", "email", ("e-mail", "email", "mail", "courriel")),
    Label(
        "customer", "text",
        ("bill to", "billed to", "customer", "client", "ship to", "deliver to", "account holder", "kunde",
         "rechnungsempfänger", "facturé à"),
    ),
    Label("supplier", "text", ("supplier", "vendor", "seller", "from", "lieferant", "fournisseur")),
)  # fmt: skip


def bare(text: str) -> str:
    """A label's word without what is set around it, so that `No.:` and `no` are one."""
    return text.casefold().strip(".:()") or text


PHRASES: Final = {
    tuple(bare(part) for part in phrase.split()): label for label in LABELS for phrase in label.phrases
}
LONGEST: Final = max(map(len, PHRASES))


def label_at(words: tuple[Word, ...], index: int) -> tuple[Label, int] | None:
    """The longest label that starts at a word (not `total` of `total due`), and the index behind it."""
    for length in range(min(LONGEST, len(words) - index), 0, -1):
        run = words[index : index + length]
        if any(w.text.endswith(":") for w in run[:-1]):
            continue  # a colon ends a label
        label = PHRASES.get(tuple(bare(w.text) for w in run))
        if label:
            return label, index + length
    return None

"""XML as a tree.

Labels are names as they stand in the document, with their prefix: `title` and `itunes:title` of a feed are not the same, and a
default namespace changes nothing. Declarations of namespaces are no attributes. Where two prefixes stand for one namespace,
an attribute has the first of them in alphabetical order.

Comments are left out; processing instructions are in `cont` only. White space is text. Documents may name a DTD, which is not
read, but not declare or use entities of their own: those are how documents read other files or grow without bounds.
"""

from __future__ import annotations

from typing import Any

from tidings.model.errors import UsageError
from tidings.relay.document import Document, DocumentBuilder, check_size
from tidings.relay.errors import DocumentError

try:
    from lxml import etree
except ModuleNotFoundError:
    raise UsageError("XML documents need the package lxml: pip install '.[relay]' in the clone") from None

_XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"


def parse_xml(data: bytes) -> Document:
    """DocumentError if the bytes are not a well-formed XML document, or one that is too large or has entities."""
    check_size(data)
    parser = _parser()
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"not XML: {error.msg}") from None
    except ValueError as error:  # what lxml refuses by itself
        raise DocumentError(f"not XML: {error}") from None
    _refuse_entities(root, parser)
    try:
        _canonical(root)
    except etree.C14NError:
        raise DocumentError("the document has no canonical form: a namespace is not an absolute URI") from None
    builder = DocumentBuilder()
    _build(builder, root)
    return builder.build(_canonical)


def _parser() -> Any:
    """One for each document: parsers keep the names they have seen."""
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=True,
    )


def _refuse_entities(root: Any, parser: Any) -> None:
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and next(dtd.iterentities(), None) is not None:
        raise DocumentError("the document declares entities, which are not read")
    # Where a DTD is named, it might declare them: to the parser they are no error then.
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.WAR_UNDECLARED_ENTITY:
            raise DocumentError(f"the document uses entities of a DTD, which is not read: {entry.message}")


def _build(builder: DocumentBuilder, element: Any) -> None:
    """Recursion is bounded by DOCUMENT_DEPTH_MAX."""
    name = etree.QName(element).localname
    builder.open(name if element.prefix is None else f"{element.prefix}:{name}", element)
    for key, value in element.attrib.items():
        builder.attribute(_attribute_name(element, key), value)
    builder.text(element.text or "")
    for child in element:
        if child.tag is not etree.ProcessingInstruction:
            _build(builder, child)
        builder.text(child.tail or "")
    builder.close()


def _attribute_name(element: Any, key: str) -> str:
    if not key.startswith("{"):
        return key
    namespace, _, name = key[1:].partition("}")
    if namespace == _XML_NAMESPACE:
        return f"xml:{name}"
    prefix = min(prefix for prefix, uri in element.nsmap.items() if uri == namespace and prefix is not None)
    return f"{prefix}:{name}"


def _canonical(element: Any) -> str:
    if element.getparent() is not None and None in element.nsmap:
        # Where the default namespace comes from above, libxml2 takes some nodes out of it that are below a prefixed one.
        element = etree.fromstring(etree.tostring(element, with_tail=False), _parser())
    text: bytes = etree.tostring(element, method="c14n", with_comments=False)
    return text.decode()

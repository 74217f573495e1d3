//! Folders as the XML of `WebDAV`, and as a page for browsers; pure.
//!
//! Names stand in addresses only, with every byte that is no letter, digit, `-`, `.`, `_` or `~` as `%XX`: so any name
//! can be told, of any encoding, and nothing needs to be escaped once more.

use super::tree::Properties;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use siltstone_store::Time;
use std::fmt::Write;

/// Bytes that stand for others in an address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Beginning of a list of what there is.
pub(super) const BEGIN: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
/// Its end.
pub(super) const END: &str = "</D:multistatus>\n";
/// Answer to who asks for all levels at once.
pub(super) const FINITE_DEPTH: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";

/// The address of a folder, ended by a slash.
pub(super) fn address_of(names: &[Vec<u8>]) -> String {
    let mut address = String::from("/");
    for name in names {
        // Writing to a string does not fail.
        let _ = write!(address, "{}/", percent_encode(name, ENCODED));
    }
    address
}

/// The address of what has this name in a folder.
pub(super) fn address_in(folder: &str, name: &[u8], is_folder: bool) -> String {
    format!("{folder}{}{}", percent_encode(name, ENCODED), if is_folder { "/" } else { "" })
}

/// Properties of the resource at an address, as XML.
pub(super) fn response(address: &str, properties: &Properties) -> String {
    let mut text = format!("<D:response><D:href>{address}</D:href><D:propstat><D:prop>");
    match &properties.file {
        None => text += "<D:resourcetype><D:collection/></D:resourcetype>",
        Some(file) => {
            let _ = write!(
                text,
                "<D:resourcetype/><D:getcontentlength>{}</D:getcontentlength><D:getetag>\"{}\"</D:getetag>\
                 <D:getcontenttype>application/octet-stream</D:getcontenttype>",
                file.size, file.tag
            );
        }
    }
    if let Some(time) = properties.modified.and_then(http_date) {
        let _ = write!(text, "<D:getlastmodified>{time}</D:getlastmodified>");
    }
    text + "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n"
}

/// A time as HTTP tells it; none that it cannot tell.
pub(super) fn http_date(time: Time) -> Option<String> {
    let moment = Timestamp::from_second(time.seconds).ok()?;
    (moment.as_second() >= 0).then(|| moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

/// Beginning of a page.
pub(super) fn page_begin(address: &str) -> String {
    let up = if address == "/" { "" } else { "<li><a href=\"../\">..</a></li>\n" };
    format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{address}</title></head>\n\
         <body><h1>{address}</h1>\n<ul>\n{up}"
    )
}

/// A line of a page.
pub(super) fn page_line(address: &str, name: &[u8], properties: &Properties) -> String {
    let slash = if properties.file.is_none() { "/" } else { "" };
    format!("<li><a href=\"{address}\">{}{slash}</a></li>\n", escaped(&String::from_utf8_lossy(name)))
}

/// End of a page.
pub(super) const PAGE_END: &str = "</ul></body></html>\n";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::super::tree::FileProperties;
    use super::*;

    #[test]
    fn any_name_can_be_told() {
        assert_eq!(address_of(&[]), "/");
        assert_eq!(address_of(&[b"a b".to_vec(), b"c&<\xff".to_vec()]), "/a%20b/c%26%3C%FF/");
        assert_eq!(address_in("/x/", b"caf\xc3\xa9.txt", false), "/x/caf%C3%A9.txt");
        let file = FileProperties { size: 5, tag: "t".into() };
        let told = response("/x", &Properties { modified: Some(Time::default()), file: Some(file) });
        assert!(told.contains("<D:getcontentlength>5</D:getcontentlength>"), "{told}");
        assert!(told.contains("Thu, 01 Jan 1970 00:00:00 GMT"), "{told}");
        let line = page_line("/a", b"<b>&", &Properties { modified: None, file: None });
        assert!(line.contains("&lt;b&gt;&amp;/"), "{line}");
    }

    #[test]
    fn a_time_that_http_cannot_tell_is_left_out() {
        assert_eq!(http_date(Time { seconds: -1, nanoseconds: 0 }), None);
        assert_eq!(http_date(Time { seconds: i64::MAX, nanoseconds: 0 }), None);
        let told = http_date(Time { seconds: 784_111_777, nanoseconds: 5 }).expect("a time");
        assert_eq!(told, "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}

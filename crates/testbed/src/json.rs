//! Output of programs as JSON: one document, or a message per line.

use serde_json::Value;

/// The number under `key`, wherever it stands in a document; of several messages the last that has it.
pub fn number_of(text: &str, key: &str) -> Option<i64> {
    let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    stream.filter_map(Result::ok).filter_map(|value| number_in(&value, key)).last()
}

fn number_in(value: &Value, key: &str) -> Option<i64> {
    match value {
        Value::Object(fields) => {
            let direct = fields.get(key).and_then(Value::as_i64);
            direct.or_else(|| fields.values().find_map(|field| number_in(field, key)))
        }
        Value::Array(items) => items.iter().find_map(|item| number_in(item, key)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn finds_a_number_in_documents_and_in_lines() {
        assert_eq!(number_of("[{\"a\": {\"wanted\": 7}}]", "wanted"), Some(7));
        assert_eq!(number_of("{\"a\": 1}\n{\"wanted\": -8}\n", "wanted"), Some(-8));
        assert_eq!(number_of("{\"wanted\": 1}\n{\"wanted\": 2}\n{\"a\": 1}\n", "wanted"), Some(2));
        assert_eq!(number_of("{\"a\": 1}", "wanted"), None);
    }
}

use super::*;

#[test]
fn slice() {
    let base: Vec<u8> = (0..100_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let mut text = base[1000..200_000].to_vec();
    text[5000] ^= 1;
    let mut encoder = RegionEncoder::new(Level::Zstd(3)).unwrap();
    let mut out = Vec::new();
    let form = encoder.encode(&[&base], &[&text[..500], &text[500..]], &mut out);
    assert_eq!(form, Form::Zstd);
    assert!(out.len() < 100, "{}", out.len());
    let mut decoder = RegionDecoder::new();
    assert_eq!(decoder.decode(form, &[&base], &out, text.len()).unwrap(), text);
}

//! `silt-lab`: arguments in, tables and reports out.

fn main() {
    println!("{} experiments", siltstone_lab::experiments().len());
}

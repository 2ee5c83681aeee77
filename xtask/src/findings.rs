//! What a check has found: errors fail the gate, remarks do not.

/// The result of one check.
#[derive(Debug, Default)]
pub struct Findings {
    pub errors: Vec<String>,
    pub remarks: Vec<String>,
}

impl Findings {
    pub fn error(&mut self, text: impl Into<String>) {
        self.errors.push(text.into());
    }

    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    pub fn extend(&mut self, other: Findings) {
        self.errors.extend(other.errors);
        self.remarks.extend(other.remarks);
    }

    /// Prints everything.
    ///
    /// # Errors
    /// A summary, if there is any error.
    pub fn report(&self, check: &str) -> Result<(), String> {
        for remark in &self.remarks {
            println!("{check}: note: {remark}");
        }
        for error in &self.errors {
            println!("{check}: {error}");
        }
        match self.errors.len() {
            0 => {
                println!("{check}: ok");
                Ok(())
            }
            n => Err(format!("{check}: {n} to repair")),
        }
    }
}

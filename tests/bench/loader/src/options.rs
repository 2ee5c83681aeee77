//! What the command line says.

use std::str::FromStr;

/// Printed for `--help` and after a mistake.
pub const USAGE: &str = "\
loader: publishes and consumes over AMQP 0-9-1 and says what a message cost the broker, as one line of JSON

  --host HOST         broker to connect to (127.0.0.1)
  --port PORT         its AMQP port (5672)
  --user, --password  credentials (guest, guest)
  --pid PID           process of the broker, for its CPU time and memory
  --publishers N      connections that publish (1)
  --consumers N       connections that consume (1); 0 only publishes
  --queues N          queues; publishers and consumers are dealt out among them (1)
  --size BYTES        size of a body (1000)
  --persistent        publish with delivery mode 2
  --durable           declare durable queues
  --max-length N      declare queues with x-max-length
  --confirm WINDOW    publisher confirms with this many unconfirmed messages a publisher; 0 is none (0)
  --ack N             acknowledge every N messages; 0 is auto-ack (0)
  --prefetch N        basic.qos of a consumer; 0 is none (0)
  --in-flight N       most messages published but not consumed yet, a queue; 0 is no limit (4000)
  --warmup SECONDS    before measuring (1)
  --seconds SECONDS   how long to measure (5); without consumers everything from the beginning until the broker has
                      handled the last message is measured
";

/// One run's load.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    /// The broker's process; without it nothing is said about CPU and memory.
    pub pid: Option<u32>,
    pub publishers: usize,
    pub consumers: usize,
    pub queues: usize,
    /// In bytes.
    pub size: usize,
    pub persistent: bool,
    pub durable: bool,
    /// `x-max-length`, in messages.
    pub max_length: Option<u64>,
    /// Most unconfirmed messages of a publisher; 0: no confirms.
    pub confirm: u64,
    /// Messages an acknowledgement; 0: auto-ack.
    pub ack: u64,
    pub prefetch: u16,
    /// Most messages between publishers and consumers of a queue; 0: no limit.
    pub in_flight: u64,
    pub warmup_s: f64,
    pub seconds: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 5672,
            user: "guest".to_owned(),
            password: "guest".to_owned(),
            pid: None,
            publishers: 1,
            consumers: 1,
            queues: 1,
            size: 1000,
            persistent: false,
            durable: false,
            max_length: None,
            confirm: 0,
            ack: 0,
            prefetch: 0,
            in_flight: 4000,
            warmup_s: 1.0,
            seconds: 5.0,
        }
    }
}

impl Options {
    /// Reads the arguments behind the program's name.
    ///
    /// # Errors
    /// What is wrong, in a sentence.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--host" => options.host = value()?,
                "--port" => options.port = number(&name, &value()?)?,
                "--user" => options.user = value()?,
                "--password" => options.password = value()?,
                "--pid" => options.pid = Some(number(&name, &value()?)?),
                "--publishers" => options.publishers = number(&name, &value()?)?,
                "--consumers" => options.consumers = number(&name, &value()?)?,
                "--queues" => options.queues = number(&name, &value()?)?,
                "--size" => options.size = number(&name, &value()?)?,
                "--persistent" => options.persistent = true,
                "--durable" => options.durable = true,
                "--max-length" => options.max_length = Some(number(&name, &value()?)?),
                "--confirm" => options.confirm = number(&name, &value()?)?,
                "--ack" => options.ack = number(&name, &value()?)?,
                "--prefetch" => options.prefetch = number(&name, &value()?)?,
                "--in-flight" => options.in_flight = number(&name, &value()?)?,
                "--warmup" => options.warmup_s = number(&name, &value()?)?,
                "--seconds" => options.seconds = number(&name, &value()?)?,
                _ => return Err(format!("unknown option {name}")),
            }
        }
        options.check()?;
        Ok(options)
    }

    /// Loads that would stall or measure nothing.
    fn check(&self) -> Result<(), String> {
        if self.publishers == 0 || self.queues == 0 {
            return Err("at least one publisher and one queue are needed".to_owned());
        }
        if self.publishers < self.queues || (self.consumers > 0 && self.consumers < self.queues) {
            return Err("every queue needs a publisher, and a consumer if there are any".to_owned());
        }
        if self.prefetch > 0 && u64::from(self.prefetch) < self.ack {
            return Err("with a prefetch below --ack the consumer would wait for ever".to_owned());
        }
        // NaN is refused too.
        if !(self.seconds > 0.0 && self.warmup_s >= 0.0) {
            return Err("--seconds must be above 0, --warmup not below".to_owned());
        }
        Ok(())
    }

    /// Whether the broker may drop messages, so that not all that was published arrives.
    pub fn may_drop(&self) -> bool {
        self.max_length.is_some()
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} can't be {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let options =
            parse("--port 7 --persistent --ack 10 --prefetch 100 --max-length 5 --seconds 0.5").unwrap();
        let expected = Options {
            port: 7,
            persistent: true,
            ack: 10,
            prefetch: 100,
            max_length: Some(5),
            seconds: 0.5,
            ..Options::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn mistakes_are_told() {
        assert_eq!(parse("--prot 1").unwrap_err(), "unknown option --prot");
        assert_eq!(parse("--port x").unwrap_err(), "--port can't be x");
        assert_eq!(parse("--port").unwrap_err(), "--port needs a value");
        assert!(parse("--ack 10 --prefetch 5").is_err());
        assert!(parse("--queues 2").is_err());
        assert!(parse("--seconds NaN").is_err());
    }
}

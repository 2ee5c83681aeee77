//! Tests of the fifo machine: stories that a RabbitMQ user can read, and properties against naive models.

mod careful;
mod properties;
mod stories;
mod world;

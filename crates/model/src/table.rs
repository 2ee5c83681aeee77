//! AMQP field tables: values, decoding within limits, encoding.

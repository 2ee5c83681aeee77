//! What cannot be expressed as a load: how long single operations take.

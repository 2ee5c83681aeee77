//! Links between processes: a connection over the loopback for each pair and direction; frames with their length before them.

use broker::groups::{Links, NodeGroups};
use bytes::Bytes;
use cluster::NodeId;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Bytes behind which no frame of this program is.
const FRAME_LIMIT: usize = 64 << 20;

/// The ways to the other nodes: frames for groups, and bulk in connections of its own.
pub struct Peers {
    ways: BTreeMap<(NodeId, Lane), Sender<Bytes>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Groups,
    Bulk,
}

impl Links for Peers {
    fn send(&self, to: NodeId, frame: Bytes) {
        self.put(to, Lane::Groups, frame);
    }

    fn bulk(&self, to: NodeId, frame: Bytes) {
        self.put(to, Lane::Bulk, frame);
    }
}

impl Peers {
    /// Connects this node with the others, of each of which the port is known, and begins with threads that send.
    pub fn connect(me: NodeId, ports: &BTreeMap<NodeId, u16>) -> Result<Arc<Self>, Box<dyn Error>> {
        let mut ways = BTreeMap::new();
        for (&to, &port) in ports.iter().filter(|(to, _)| **to != me) {
            for lane in [Lane::Groups, Lane::Bulk] {
                let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
                stream.set_nodelay(true)?;
                stream.write_all(&[me.0 as u8, lane as u8])?;
                let (way, frames) = channel();
                thread::spawn(move || send(stream, &frames));
                ways.insert((to, lane), way);
            }
        }
        Ok(Arc::new(Self { ways }))
    }

    fn put(&self, to: NodeId, lane: Lane, frame: Bytes) {
        if let Some(way) = self.ways.get(&(to, lane)) {
            let _ = way.send(frame);
        }
    }
}

fn send(stream: TcpStream, frames: &Receiver<Bytes>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, stream);
    while let Ok(frame) = frames.recv() {
        let mut next = Some(frame);
        while let Some(frame) = next {
            out.write_all(&(frame.len() as u32).to_le_bytes())?;
            out.write_all(&frame)?;
            next = frames.try_recv().ok();
        }
        out.flush()?;
    }
    Ok(())
}

/// Takes the connections of the others and has the groups receive what comes in them.
pub fn listen(listener: TcpListener, groups: Arc<NodeGroups>) {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let groups = groups.clone();
            thread::spawn(move || receive(stream, &groups));
        }
    });
}

fn receive(stream: TcpStream, groups: &Arc<NodeGroups>) -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, stream);
    let mut from = [0; 2];
    input.read_exact(&mut from)?;
    let (from, bulk) = (NodeId(from[0].into()), from[1] == Lane::Bulk as u8);
    loop {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut frame = vec![0; length];
        input.read_exact(&mut frame)?;
        match bulk {
            true => groups.bulk(from, frame.into()),
            false => groups.receive(from, frame.into()),
        }
    }
}

/// A clock that ticks for the groups.
pub fn tick(groups: Arc<NodeGroups>) {
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_millis(100));
            groups.tick();
        }
    });
}

//! How large published messages are, in RabbitMQ's classes.

use super::Count;

/// The largest body of each class but the last, in bytes; the last has none.
pub const SIZE_BOUNDS: [usize; 8] = [
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
];
const CLASSES: usize = SIZE_BOUNDS.len() + 1;

/// How many bodies there were of each class, and how many bytes they had together.
#[derive(Debug, Default)]
pub struct MessageSizes {
    classes: [Count; CLASSES],
    bytes: Count,
}

/// What [`MessageSizes`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeCounts {
    /// Bodies by class.
    pub classes: [u64; CLASSES],
    /// Their bytes.
    pub bytes: u64,
}

impl MessageSizes {
    /// The numbers.
    pub fn counts(&self) -> SizeCounts {
        SizeCounts {
            classes: self.classes.each_ref().map(Count::get),
            bytes: self.bytes.get(),
        }
    }
}

impl SizeCounts {
    /// Adds a body of so many bytes.
    pub fn add_one(&mut self, bytes: usize) {
        let class = SIZE_BOUNDS.iter().position(|most| bytes <= *most);
        self.classes[class.unwrap_or(CLASSES - 1)] += 1;
        self.bytes += bytes as u64;
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.classes.iter_mut().zip(other.classes) {
            *sum += count;
        }
        self.bytes += other.bytes;
    }
}

/// Bodies of one class that follow each other: mostly the next one is of the same, and costs a comparison and two additions.
#[derive(Debug)]
pub struct SizeRun {
    class: usize,
    least: usize,
    /// How many sizes the class has.
    width: usize,
    count: u64,
    bytes: u64,
}

impl Default for SizeRun {
    fn default() -> Self {
        Self {
            class: 0,
            least: 0,
            width: SIZE_BOUNDS[0] + 1,
            count: 0,
            bytes: 0,
        }
    }
}

impl SizeRun {
    /// One body more.
    #[inline(always)]
    pub fn note(&mut self, size: usize, sizes: &MessageSizes) {
        if size.wrapping_sub(self.least) >= self.width {
            self.change(size, sizes);
        }
        self.count += 1;
        self.bytes += size as u64;
    }

    /// Shows what was noted.
    pub fn show(&mut self, sizes: &MessageSizes) {
        sizes.classes[self.class].add(std::mem::take(&mut self.count));
        sizes.bytes.add(std::mem::take(&mut self.bytes));
    }

    #[cold]
    fn change(&mut self, size: usize, sizes: &MessageSizes) {
        self.show(sizes);
        self.class = SIZE_BOUNDS.partition_point(|bound| *bound < size);
        self.least = match self.class {
            0 => 0,
            class => SIZE_BOUNDS[class - 1] + 1,
        };
        let bound = SIZE_BOUNDS.get(self.class).copied().unwrap_or(usize::MAX - 1);
        self.width = bound - self.least + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_in_the_first_class_whose_bound_they_do_not_exceed() {
        let (sizes, mut run) = (MessageSizes::default(), SizeRun::default());
        let bodies = [0, 100, 101, 1_000, 100, 100_000_000, 100_000_001, 512 << 20, 1];
        for size in bodies {
            run.note(size, &sizes);
        }
        run.show(&sizes);
        let counts = sizes.counts();
        assert_eq!(counts.classes, [4, 2, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(counts.bytes, bodies.iter().sum::<usize>() as u64);
    }
}

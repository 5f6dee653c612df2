// Random numbers that are the same on every machine and every run.

/** A stream of numbers from 0 up to 1 (sfc32, seeded by mixing the seed with the stream's number). */
export function stream(seed, number = 0) {
  let mixed = (Math.imul(seed | 0, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca77)) | 0
  const word = () => {
    mixed = (mixed + 0x9e3779b9) | 0
    let t = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    t = Math.imul(t ^ (t >>> 15), 0x735a2d97)
    return t ^ (t >>> 15)
  }
  let [a, b, c, count] = [word(), word(), word(), 1]
  const next = () => {
    const sum = (((a + b) | 0) + count) | 0
    count = (count + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    return (sum >>> 0) / 2 ** 32
  }
  for (let i = 0; i < 12; i++) next()
  return next
}

/** A whole number from 0 up to `below`. */
export const pick = (next, below) => Math.floor(next() * below)

/** 0, 1, 2… with the given mean, each less likely than the one before. */
export function geometric(next, mean) {
  return Math.floor(Math.log(1 - next()) / Math.log(mean / (mean + 1)))
}

/** The numbers 0 to `size - 1` in random order. */
export function shuffled(next, size) {
  const order = Uint32Array.from({ length: size }, (_, i) => i)
  for (let i = size - 1; i > 0; i--) {
    const j = pick(next, i + 1)
    const kept = order[i]
    order[i] = order[j]
    order[j] = kept
  }
  return order
}

/** Draws ranks 0 to `size - 1` with weight (rank + shift)^-power. */
export function zipf(size, shift, power) {
  const sums = new Float64Array(size)
  let sum = 0
  for (let rank = 0; rank < size; rank++) {
    sum += (rank + shift) ** -power
    sums[rank] = sum
  }
  return (next) => {
    const wanted = next() * sum
    let [low, high] = [0, size - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle] > wanted) high = middle
      else low = middle + 1
    }
    return low
  }
}

// What is large goes over the border in pieces, between which the event loop turns.

/** Lets the event loop turn once; rejects when the call was aborted. */
export type Turn = () => Promise<void>

/**
 * Hands the pieces of `0..total` to `take`, each of `size` at most. What fits one piece is taken at once.
 */
export async function inPieces(
  total: number,
  size: number,
  turn: Turn,
  take: (from: number, to: number) => void,
): Promise<void> {
  for (let from = 0; from < total; from += size) {
    if (from > 0) await turn()
    take(from, Math.min(from + size, total))
  }
}

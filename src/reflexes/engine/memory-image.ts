/** Bytes that lie at an address. */
type Patch = { at: number; bytes: Uint8Array }

/** The content of QuickJS's memory at one moment. */
export type MemoryImage = { patches: readonly Patch[]; heap_end: number; size: number }

/** The layout: static data, the stack, then the heap from `heap_start`. */
export type Layout = { static_end: number; heap_start: number; heap_end_at: number }

const BLOCK = 1024

/** A module's memory of fixed size. The stack is not part of an image. */
export class ImagedMemory {
  readonly bytes: Uint8Array
  readonly #words: Int32Array
  readonly #layout: Layout

  constructor(buffer: ArrayBufferLike, layout: Layout) {
    this.bytes = new Uint8Array(buffer)
    this.#words = new Int32Array(buffer)
    this.#layout = layout
  }

  get heapEnd(): number {
    return this.#words[this.#layout.heap_end_at / 4] ?? 0
  }

  take(): MemoryImage {
    const { static_end, heap_start } = this.#layout
    return this.#image([this.#copy(0, static_end), this.#copy(heap_start, this.heapEnd)])
  }

  /** Takes the bytes that differ from `base`, the image beneath this one. */
  takeSince(base: MemoryImage): MemoryImage {
    return this.#image([...base.patches.flatMap((patch) => this.#changedIn(patch)), this.#copy(base.heap_end, this.heapEnd)])
  }

  /** Restores images, later ones over earlier ones. The rest of the heap is zeroed. */
  restore(...images: readonly [MemoryImage, ...MemoryImage[]]): void {
    const { heapEnd } = this
    for (const { patches } of images) for (const { at, bytes } of patches) this.bytes.set(bytes, at)
    const end = this.heapEnd
    if (heapEnd > end) this.bytes.fill(0, end, heapEnd)
  }

  #image(patches: Patch[]): MemoryImage {
    const size = patches.reduce((sum, { bytes }) => sum + bytes.length, 0)
    return { patches: patches.filter(({ bytes }) => bytes.length > 0), heap_end: this.heapEnd, size }
  }

  #copy = (from: number, to: number): Patch => ({ at: from, bytes: this.bytes.slice(from, to) })

  #changedIn({ at, bytes }: Patch): Patch[] {
    const patches: Patch[] = []
    let start: number | null = null
    for (let offset = 0; offset <= bytes.length; offset += BLOCK) {
      const end = Math.min(offset + BLOCK, bytes.length)
      const changed = offset < bytes.length && this.#differs(at, bytes, offset, end)
      if (changed) start ??= offset
      if (changed || start === null) continue
      patches.push(this.#copy(at + start, at + Math.min(offset, bytes.length)))
      start = null
    }
    return start === null ? patches : [...patches, this.#copy(at + start, at + bytes.length)]
  }

  #differs(at: number, bytes: Uint8Array, from: number, to: number): boolean {
    for (let offset = from; offset < to; offset += 1) if (this.bytes[at + offset] !== bytes[offset]) return true
    return false
  }
}

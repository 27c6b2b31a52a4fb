export type ListView<Item> = { items: readonly Item[]; error: Error | null; is_loading: boolean }

/** A list that is read again at an interval while somebody looks. */
export class ListStore<Item> {
  readonly #read: () => Promise<readonly Item[]>
  readonly #every_ms: number
  readonly #listeners = new Set<() => void>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #view: ListView<Item> = { items: [], error: null, is_loading: true }

  constructor(read: () => Promise<readonly Item[]>, every_ms: number) {
    this.#read = read
    this.#every_ms = every_ms
  }

  readonly view = (): ListView<Item> => this.#view

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) void this.refresh()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) clearTimeout(this.#timer)
    }
  }

  readonly refresh = async (): Promise<void> => {
    clearTimeout(this.#timer)
    const view = await this.#read().then(
      (items) => ({ items, error: null, is_loading: false }),
      (error: unknown) => ({ ...this.#view, error: error instanceof Error ? error : new Error(String(error)), is_loading: false }),
    )
    this.#view = view
    for (const listener of this.#listeners) listener()
    clearTimeout(this.#timer)
    if (this.#listeners.size > 0) this.#timer = setTimeout(() => void this.refresh(), this.#every_ms)
  }
}

const LONGEST = 64

/**
 * The names by which a model knows tools: providers take letters, digits, `_` and `-`, at most 64, so that `http.tickets.open` is shown as `http_tickets_open`.
 * Where two would be the same, the later one is numbered.
 */
export function shownNames(names: readonly string[]): string[] {
  const taken = new Set<string>()
  return names.map((name) => {
    const plain = name.replaceAll(/[^\w-]/g, '_')
    let shown = plain.slice(0, LONGEST)
    for (let number = 2; taken.has(shown); number++) shown = `${plain.slice(0, LONGEST - 4)}_${number}`
    taken.add(shown)
    return shown
  })
}

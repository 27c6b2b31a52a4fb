/**
 * `changes`: the table that the statement writes. `inserts`: whether it may add a row to it.
 * `needs_rows`: it has no effect, and no row, while all its tables are empty.
 */
type TablesNamed = {
  changes: string | null
  inserts: boolean
  needs_rows: boolean
  tables: readonly string[]
  shadowed: Map<string, string>
}
/** `whole`: the statements that make the table as all its steps do. */
type Table = { columns: string[]; steps: { place: number; sql: string }[]; whole: string[] }

const STEP = /^\s*(CREATE TABLE|CREATE (?:UNIQUE )?INDEX \S+ ON|ALTER TABLE)\s+[`"]?(\w+)/
const CHANGES = /\b(INSERT(?:\s+OR\s+\w+)?\s+INTO|UPDATE(?:\s+OR\s+\w+)?|DELETE\s+FROM)\s+[`"]?(\w+)/i
/** A `(` is rows from elsewhere, as a name that the schema does not have is. */
const NAMES = /\b(?:FROM|JOIN|INTO|UPDATE)\s+[`"]?(\w+|\()/gi
/** They have a row without rows, or may have. */
const COUNTS = /\bUNION\b|\b(?:count|min|max|sum|total|avg|exists|group_concat|json_group_\w+)\s*\(/i
const COLUMNS = /^\t`(\w+)`|\bADD `(\w+)`/gm
const ADDS_COLUMN = /\bADD `(\w+)`/
const MAKES_INDEX = /^\s*CREATE (?:UNIQUE )?INDEX `(\w+)`/
const ADDED = /\bADD (`[^;]+)/
const LAST_COLUMN = /^(\t`.*?)(,?)$(?![\s\S]*^\t`)/m
/** Statements without effect on empty tables. Their aggregates return no row instead of zero. */
export const NEEDS_ROWS = /^\s*(?:SELECT|UPDATE|DELETE)\b/
/** Texts that are built of parts differ without end. */
const KEPT_TEXTS = 1000

/**
 * A schema as its steps, in order: each makes or changes one table. A step is never changed once a
 * deployment may have run it.
 */
export class Schema {
  readonly length: number
  readonly #tables = new Map<string, Table>()
  readonly #texts = new Map<string, TablesNamed>()

  constructor(steps: readonly string[]) {
    this.length = steps.length
    for (const [place, sql] of steps.entries()) {
      const [, kind, name = ''] = STEP.exec(sql) ?? []
      const known = this.#tables.get(name)
      if (kind === undefined || (kind === 'CREATE TABLE') !== (known === undefined))
        throw new Error(`step ${place} of a schema must create a table, or an index or column of one: ${sql}`)
      const table = known ?? { columns: [], steps: [], whole: [] }
      table.steps.push({ place, sql })
      const column = ADDED.exec(sql)?.[1]
      if (column === undefined) table.whole.push(sql)
      else table.whole[0] = (table.whole[0] ?? '').replace(LAST_COLUMN, `$1,\n\t${column}$2`)
      if (!kind.includes('INDEX')) for (const [, made, added] of sql.matchAll(COLUMNS)) table.columns.push(made ?? added ?? '')
      this.#tables.set(name, table)
    }
  }

  get size(): number {
    return this.#tables.size
  }

  has(name: string): boolean {
    return this.#tables.has(name)
  }

  /** They make the table as all its steps do: adding a column takes longer than a table does. */
  wholeOf(name: string): readonly string[] {
    return this.#tables.get(name)?.whole ?? []
  }

  /** The steps of a table from the place `from` in the schema. */
  stepsOf(name: string, from: number): string[] {
    const steps = this.#tables.get(name)?.steps ?? []
    return steps.filter(({ place }) => place >= from).map(({ sql }) => sql)
  }

  namesIn(text: string): TablesNamed {
    const kept = this.#texts.get(text)
    if (kept) return kept
    const [, kind = '', changed = ''] = CHANGES.exec(text) ?? []
    const tables = new Set(Array.from(text.matchAll(NAMES), ([, name = '']) => name))
    const named: TablesNamed = {
      changes: this.#tables.has(changed) ? changed : null,
      inserts: /^insert/i.test(kind),
      needs_rows:
        NEEDS_ROWS.test(text) && tables.size > 0 && Array.from(tables).every((name) => this.#tables.has(name)) && !COUNTS.test(text),
      tables: Array.from(tables).filter((name) => this.#tables.has(name)),
      shadowed: new Map(),
    }
    if (this.#texts.size >= KEPT_TEXTS) this.#texts.clear()
    this.#texts.set(text, named)
    return named
  }

  /** The statement with empty tables in place of those that are absent. */
  shadow(text: string, absent: readonly string[]): string {
    const { shadowed } = this.namesIn(text)
    const key = absent.join(' ')
    const made = shadowed.get(key) ?? this.#shadow(text, absent)
    shadowed.set(key, made)
    return made
  }

  #shadow(text: string, absent: readonly string[]): string {
    const tables = absent.map((name) => {
      const columns = this.#tables.get(name)?.columns ?? []
      return `${name} (${columns.join(', ')}) AS (SELECT ${columns.map(() => 'NULL').join(', ')} WHERE false)`
    })
    // An empty table has no index to read by.
    const plain = text.replaceAll(new RegExp(`\\b(${absent.join('|')})\\s+INDEXED BY \\w+`, 'g'), '$1')
    const first = /^\s*WITH\s+(?:RECURSIVE\s+)?/i.exec(plain)?.[0]
    return first === undefined ? `WITH ${tables.join(', ')} ${plain}` : `${first}${tables.join(', ')}, ${plain.slice(first.length)}`
  }
}

/**
 * The tables of one object, each of which is laid by its first row: a table and an index are at
 * least one page each, so an object that has no skill has no page of skills.
 */
export class LazyTables {
  readonly schema: Schema
  readonly sql: SqlStorage
  /** Replaced as a whole, so that a transaction that is rolled back can restore it. */
  laid: ReadonlySet<string>

  constructor(sql: SqlStorage, schema: Schema) {
    this.sql = sql
    this.schema = schema
    const found = sql.exec<{ name: string }>(`SELECT name FROM sqlite_master WHERE type = 'table'`).toArray()
    this.laid = new Set(found.map(({ name }) => name).filter((name) => schema.has(name)))
  }

  /**
   * Runs the steps that were added since the place `from`, on tables that are there. After a
   * rollback, a version that knew fewer steps has noted fewer than have run.
   */
  migrate(from: number): void {
    for (const name of this.laid) for (const step of this.schema.stepsOf(name, from)) if (!this.#hasRun(name, step)) this.sql.exec(step)
  }

  #hasRun(table: string, step: string): boolean {
    const made = MAKES_INDEX.exec(step)?.[1] ?? table
    const column = ADDS_COLUMN.exec(step)?.[1]
    const [found] = this.sql.exec<{ sql: string }>('SELECT sql FROM sqlite_master WHERE name = ?', made).toArray()
    return found !== undefined && (column === undefined || found.sql.includes(`\`${column}\``))
  }

  /** The text that does the same here as if all tables were laid. Null if it has no effect. */
  runnable(text: string): string | null {
    if (this.laid.size === this.schema.size) return text
    const { changes, inserts, needs_rows, tables } = this.schema.namesIn(text)
    if (changes !== null && !this.laid.has(changes)) {
      if (!inserts) return null
      this.lay(changes)
    }
    const absent = tables.filter((name) => !this.laid.has(name))
    if (absent.length === tables.length && needs_rows) return null
    return absent.length === 0 ? text : this.schema.shadow(text, absent)
  }

  lay(name: string): void {
    for (const statement of this.schema.wholeOf(name)) this.sql.exec(statement)
    this.laid = new Set(this.laid).add(name)
  }
}

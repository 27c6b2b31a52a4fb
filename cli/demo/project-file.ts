import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError, messageOf } from '../lib/cli-error.ts'
import { packageFolder } from '../lib/package.ts'

/** Resolves a file of this project by its path in it. */
export async function readProjectFile(file: string): Promise<string> {
  try {
    return await readFile(join(packageFolder, file), 'utf8')
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${messageOf(error)}`, 'It belongs to the project: git checkout brings it back.', error)
  }
}

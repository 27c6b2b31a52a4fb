import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'

/** Keeps what a test run writes, also its servers and browsers, in a folder that goes with it. */
export function keepTemporaryFiles(): void {
  process.env['TMPDIR'] = temporaryFolder('reflex-tests-').path
}

import journal from './meta/_journal.json';
import m0000 from './0000_start.sql';
import m0001 from './0001_chain.sql';
import m0002 from './0002_sent.sql';

  export default {
    journal,
    migrations: {
      m0000,
m0001,
m0002
    }
  }
  
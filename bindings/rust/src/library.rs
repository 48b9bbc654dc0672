//! Where the C library comes from.

use crate::error::{Error, ErrorKind};
use crate::raw;
use std::ffi::CStr;
use std::fmt;
use std::mem::size_of;
use std::ptr::addr_of;

/// What the shared library is called.
pub const FILE_NAME: &str = "libsitsoptima.so.1";

/// The loaded `libsitsoptima`. It stays loaded until the process ends.
#[derive(Clone, Copy)]
pub struct Library {
    api: &'static raw::optima_api_v1,
}

impl Library {
    /// The linked library (feature `link`), else the first of: `libsitsoptima.so.1` in the folder
    /// of the running program; what the loader's own search finds by that name. A file beside the
    /// program that cannot be loaded is an error, not a reason to look further.
    pub fn load() -> Result<Library, Error> {
        find()
    }

    /// The library at this path, nowhere else.
    #[cfg(not(feature = "link"))]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Library, Error> {
        let path = path.as_ref();
        let named = path.display();
        // A name without a slash would be searched for.
        let file = std::path::Path::new(".").join(path);
        dl::open(file.as_os_str(), |why| format!("looked for {named}, nowhere else: {why}"))
    }

    /// Release of the library, such as "1.1.0".
    pub fn version(&self) -> &'static str {
        // SAFETY: MT_SAFE; a static NUL-terminated string.
        let version = unsafe { CStr::from_ptr((self.api.version)()) };
        version.to_str().expect("a version is ASCII")
    }

    /// `OPTIMA_FEATURE_` bits of the library.
    pub fn features(&self) -> u64 {
        // SAFETY: MT_SAFE, no arguments.
        unsafe { (self.api.features)() }
    }

    /// The C functions, for what this crate does not wrap.
    pub fn api(&self) -> &'static raw::optima_api_v1 {
        self.api
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Library {{ version: {:?} }}", self.version())
    }
}

/// The function table as this crate knows it, when the library's reaches so far.
///
/// # Safety
/// `table` is null or points at an `optima_api_v1` of at least 16 bytes, as large as its
/// `struct_size` says, that lives as long as the process.
unsafe fn accept(table: *const raw::optima_api_v1) -> Result<Library, Error> {
    if table.is_null() {
        let text = format!("{FILE_NAME}: has no ABI {}", raw::OPTIMA_ABI_VERSION);
        return Err(Error::new(ErrorKind::Version, text));
    }
    // SAFETY: both rows are in the first 16 bytes. No reference to the whole table is made before
    // its size is known. `version` takes nothing and returns a static NUL-terminated string.
    let (size, version) = unsafe {
        let version = addr_of!((*table).version).read();
        (addr_of!((*table).struct_size).read() as usize, CStr::from_ptr(version()))
    };
    let wanted = size_of::<raw::optima_api_v1>();
    if size < wanted {
        let text = format!(
            "{FILE_NAME}: release {} lacks functions of {}, which this program is made for: its \
             function table has {size} bytes, {wanted} are wanted",
            version.to_string_lossy(),
            raw::OPTIMA_RELEASE
        );
        let numbers = [Some(wanted as i64), Some(size as i64), None];
        return Err(Error::with_numbers(ErrorKind::Version, text, numbers));
    }
    // SAFETY: the caller's promise, and the table is as large as the type.
    Ok(Library { api: unsafe { &*table } })
}

#[cfg(feature = "link")]
fn find() -> Result<Library, Error> {
    // SAFETY: the linked function returns a static table or null.
    unsafe { accept(raw::optima_get_api(raw::OPTIMA_ABI_VERSION)) }
}

#[cfg(not(feature = "link"))]
fn find() -> Result<Library, Error> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|program| program.parent().map(|folder| folder.join(FILE_NAME)));
    if let Some(path) = beside.as_ref().filter(|path| path.exists()) {
        return Library::open(path);
    }
    let beside = beside.map_or("the program's folder".into(), |path| path.display().to_string());
    dl::open(FILE_NAME.as_ref(), |why| {
        format!("looked for {beside}: no such file; then by the loader's search: {why}")
    })
}

#[cfg(not(feature = "link"))]
mod dl {
    use super::{accept, Error, ErrorKind, Library, FILE_NAME};
    use crate::raw;
    use std::ffi::{CStr, CString, OsStr};
    use std::mem::transmute;
    use std::os::raw::{c_char, c_int, c_void};
    use std::os::unix::ffi::OsStrExt;

    const RTLD_NOW: c_int = 2;

    #[link(name = "dl")]
    extern "C" {
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
        fn dlerror() -> *const c_char;
    }

    fn last_error() -> String {
        // SAFETY: dlerror returns null or a NUL-terminated string of this thread that lives until
        // its next call of the family.
        unsafe {
            let text = dlerror();
            if text.is_null() {
                return "no reason given".into();
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }

    /// `describe` makes the sentence of the loader's reason. A name without a slash is searched for.
    pub fn open(file: &OsStr, describe: impl Fn(&str) -> String) -> Result<Library, Error> {
        let missing = |why: &str| {
            Error::new(ErrorKind::LibraryMissing, format!("{FILE_NAME}: {}", describe(why)))
        };
        let name = CString::new(file.as_bytes()).map_err(|_| missing("a NUL in the path"))?;
        // SAFETY: both strings are NUL-terminated. The library's initialisers start nothing (it
        // promises so); the handle is never closed, so what it gives lives as long as the process.
        let get_api = unsafe {
            let library = dlopen(name.as_ptr(), RTLD_NOW);
            if library.is_null() {
                return Err(missing(&last_error()));
            }
            dlsym(library, b"optima_get_api\0".as_ptr().cast())
        };
        if get_api.is_null() {
            return Err(missing(&last_error()));
        }
        // SAFETY: the symbol of that name has this type in every release; it returns a static table
        // or null.
        unsafe {
            let get_api = transmute::<
                *mut c_void,
                unsafe extern "C" fn(u32) -> *const raw::optima_api_v1,
            >(get_api);
            accept(get_api(raw::OPTIMA_ABI_VERSION))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::raw::c_char;

    unsafe extern "C" fn old_version() -> *const c_char {
        b"1.0.0\0".as_ptr().cast()
    }

    /// The head of a table, as an older library has it.
    #[repr(C)]
    struct OldTable {
        struct_size: u32,
        abi: u32,
        version: unsafe extern "C" fn() -> *const c_char,
    }

    #[test]
    fn an_older_library_is_refused_with_both_releases_and_sizes() {
        static OLD: OldTable = OldTable { struct_size: 16, abi: 1, version: old_version };
        // SAFETY: a static table of 16 bytes, which it says.
        let error = unsafe { accept((&OLD as *const OldTable).cast()) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert_eq!(error.free(), Some(16));
        assert_eq!(error.needed(), Some(size_of::<raw::optima_api_v1>() as i64));
        let text = error.to_string();
        assert!(text.contains("1.0.0") && text.contains(raw::OPTIMA_RELEASE), "{text}");
    }

    #[test]
    fn a_library_of_another_abi_is_refused() {
        // SAFETY: null is allowed.
        let error = unsafe { accept(std::ptr::null()) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
    }
}

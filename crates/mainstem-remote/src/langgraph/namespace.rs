//! The place of a graph: the tasks of a run that it is below. Pure.

/// One level of a namespace: the task whose graph it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// The namespace up to here.
    pub(super) key: String,
    /// The node that runs the graph.
    pub(super) node: String,
    /// The task of the node.
    pub(super) task: String,
}

/// Returns the levels of a namespace such as `tools:<task>|1|helper:<task>`, the outermost first. A
/// number counts the further graphs of one task.
pub(super) fn levels(namespace: &str) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for segment in namespace.split('|').filter(|segment| !segment.is_empty()) {
        let is_number = segment.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && let Some(last) = levels.last_mut() {
            last.key = format!("{}|{segment}", last.key);
            continue;
        }
        let (node, task) = segment.split_once(':').unwrap_or((segment, ""));
        let above = levels.last().map(|level| format!("{}|", level.key)).unwrap_or_default();
        let key = format!("{above}{segment}");
        levels.push(Level { key, node: node.to_owned(), task: task.to_owned() });
    }
    levels
}

#[cfg(test)]
mod tests {
    //! Each form of a namespace.

    use super::levels;

    #[test]
    fn a_number_is_no_level() {
        #[track_caller]
        fn check(namespace: &str, expected: &[(&str, &str, &str)]) {
            let levels = levels(namespace);
            let shown = levels.iter().map(|level| (&*level.key, &*level.node, &*level.task));
            assert_eq!(shown.collect::<Vec<_>>(), expected);
        }
        check("", &[]);
        check("helper:a", &[("helper:a", "helper", "a")]);
        check("tools:a|1", &[("tools:a|1", "tools", "a")]);
        check("tools:a|1|chat:b", &[("tools:a|1", "tools", "a"), ("tools:a|1|chat:b", "chat", "b")]);
        check("plain|7", &[("plain|7", "plain", "")]);
        check("7", &[("7", "7", "")]);
    }
}
